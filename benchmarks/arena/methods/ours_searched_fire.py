"""Our search for FiRe with 20 trials."""

METHODS = {"search FiRe": {"name": "search", "trials": 20, "scoring": "neg_fire"}}
