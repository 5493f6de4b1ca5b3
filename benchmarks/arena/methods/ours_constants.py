"""The searches without extractors whose rules can predict by linear equations."""

SUITES = ["regression"]
_SEARCH = {"name": "search", "extractors": ["cart", "gridex", "iter"], "trials": 20, "cv": 5}

METHODS = {
    "search ICE, constants": {**_SEARCH, "scoring": "ice"},
    "search FiRe, constants": {**_SEARCH, "scoring": "neg_fire"},
}
