"""Our search for ICE with 20 trials."""

METHODS = {"search ICE": {"name": "search", "trials": 20, "scoring": "ice"}}
