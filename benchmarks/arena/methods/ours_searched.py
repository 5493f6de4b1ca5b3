"""Our search after 20 trials."""

METHODS = {"search ICE": {"name": "search", "trials": 20, "scoring": "ice"}}
