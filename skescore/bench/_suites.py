"""Benchmarks that come along, in the words of a configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from skescore._text import did_you_mean

if TYPE_CHECKING:
    from skescore.bench._configuration import BenchConfig

__all__ = ["RANKED", "SUITES", "Suite", "suite_config"]


#: What extractors can be ranked by beside scores, and whether greater is better.
RANKED = {
    "performance": True, "loss": False, "n_rules": False, "completeness_volume": True,
    "completeness_instances": True, "fidelity": True, "seconds": False, "black_box_rows": False,
}  # fmt: skip


class Suite(NamedTuple):
    """A built-in benchmark: one line about it, its configuration, and what it ranks by."""

    summary: str
    configuration: Mapping[str, Any]
    rank_by: str = "ice"


def _gridex(label: str, name: str = "gridex", **params: Any) -> dict[str, Any]:
    return {"label": label, "name": name, "params": params}


def _searched(name: str) -> dict[str, Any]:
    return {"label": name, "name": "search", "extractors": [name], "trials": 10, "cv": 3}


#: GridEx as the FiRe paper describes it: cubes are cut while their accuracy is below 0.9.
_CUTS: dict[str, Any] = {"threshold": 0.1, "min_examples": 1}
#: The settings of CREAM there.
_CLUSTERS: dict[str, Any] = {"depth": 2, "error_threshold": 0.1}

SUITES: Mapping[str, Suite] = MappingProxyType(
    {
        "smoke": Suite(
            "whether everything works: seven extractors on four small data sets, about a minute",
            {
                "data": ["iris", "wine", "breast_cancer", "friedman1"],
                "black_boxes": ["random-forest"],
                "extractors": [
                    "cart",
                    _gridex("gridex", importance_threshold=0.8),
                    _gridex("gridrex", "gridrex", importance_threshold=0.8),
                    "cream",
                    "exact",
                    "iter",
                    {"name": "trepan", "params": {"max_nodes": 7}},
                ],
                "seeds": [0],
                "folds": 3,
            },
        ),
        "paper-fire": Suite(
            "the extractors and parameters of the FiRe paper on iris, 9 nearest neighbours, ten "
            "splits",
            {
                "data": ["iris"],
                "black_boxes": [
                    {"label": "9-NN", "name": "knn", "scaled": False, "params": {"n_neighbors": 9}}
                ],
                "extractors": [
                    {
                        "label": "CART",
                        "name": "cart",
                        "params": {"max_depth": 3, "max_leaf_nodes": 3},
                    },
                    {
                        "label": "ITER",
                        "name": "iter",
                        "params": {
                            "min_update": 0.07, "n_points": 1, "max_iterations": 600,
                            "min_examples": 75, "threshold": 0.1,
                        },
                    },
                    {"label": "CREAM 4 features", "name": "cream", "params": _CLUSTERS},
                    {
                        "label": "CREAM 2 features",
                        "name": "cream",
                        "params": {**_CLUSTERS, "ignore_threshold": 0.5},
                    },
                    _gridex(
                        "GridEx 8 slices", n_slices=8, importance_threshold=0.99, depth=1, **_CUTS
                    ),
                    _gridex(
                        "GridEx 2 slices", n_slices=2, importance_threshold=0.99, depth=2, **_CUTS
                    ),
                    _gridex(
                        "GridEx 4 slices", n_slices=4, importance_threshold=0.5, depth=2, **_CUTS
                    ),
                ],
                "seeds": list(range(10)),
                "folds": 1,
            },
            "fire",
        ),
        "paper-ice": Suite(
            "the extractors of the ICE paper on wine and breast_cancer, an unbounded decision "
            "tree; parameters found by a search on the training rows, three splits; some minutes",
            {
                "data": ["wine", "breast_cancer"],
                "black_boxes": ["decision-tree"],
                "extractors": [
                    _searched(name) for name in ("exact", "cream", "iter", "gridex", "cart")
                ],
                "seeds": [0, 1, 2],
                "folds": 1,
            },
        ),
        "regression": Suite(
            "extractors for numbers on four data sets, two black boxes",
            {
                "data": ["friedman1", "friedman2", "friedman3", "diabetes"],
                "black_boxes": ["gradient-boosting", "random-forest"],
                "extractors": [
                    "cart",
                    {"label": "cart, depth 5", "name": "cart", "params": {"max_depth": 5}},
                    _gridex("gridex", importance_threshold=0.5),
                    _gridex("gridrex", "gridrex", importance_threshold=0.5),
                    "cream",
                    {"label": "cream, linear", "name": "cream", "params": {"output": "linear"}},
                    "exact",
                ],
                "seeds": [0],
                "folds": 5,
            },
        ),
        "speed": Suite(
            "seconds of every extractor with a black box that costs little; run it with --n-jobs 1",
            {
                "data": ["wine", "breast_cancer", "digits", "moons", "friedman1"],
                "black_boxes": ["decision-tree"],
                "extractors": [
                    "cart",
                    "cream",
                    "exact",
                    _gridex("gridex", importance_threshold=0.8),
                    _gridex("gridrex", "gridrex", importance_threshold=0.8),
                    "iter",
                    "real",
                    "trepan",
                ],
                "seeds": [0, 1, 2],
                "folds": 1,
            },
            "seconds",
        ),
    }
)  # fmt: skip


def suite_config(name: str) -> BenchConfig:
    """Make the configuration of a built-in benchmark.

    Parameters
    ----------
    name : str
        One of :data:`SUITES`.

    Returns
    -------
    BenchConfig
        Checked.

    Raises
    ------
    ConfigurationError
        A ValueError: there is no such suite.
    """
    from skescore.bench._configuration import ConfigurationError, config_from

    if name not in SUITES:
        raise ConfigurationError(f"There is no suite {name!r}. {did_you_mean(name, SUITES)}")
    return config_from({"name": name, **SUITES[name].configuration})
