"""The default search for FiRe."""

METHODS = {
    "search FiRe": {
        "name": "search",
        "extractors": "default",
        "trials": 20,
        "cv": 5,
        "scoring": "neg_fire",
    }
}
