"""The default search for ICE."""

METHODS = {
    "search ICE": {
        "name": "search",
        "extractors": "default",
        "trials": 20,
        "cv": 5,
        "scoring": "ice",
    }
}
