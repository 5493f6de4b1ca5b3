"""Our search after 20 trials, for FiRe."""

METHODS = {"search FiRe": {"name": "search", "trials": 20, "scoring": "neg_fire"}}
