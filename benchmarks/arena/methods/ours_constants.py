"""Small searches with CART and GridEx, whose rules predict constants, and three folds."""

_SEARCH = {"name": "search", "extractors": ["cart", "gridex"], "trials": 20, "cv": 3}

METHODS = {
    "search ICE (constants)": {**_SEARCH, "scoring": "ice"},
    "search FiRe (constants)": {**_SEARCH, "scoring": "neg_fire"},
}
