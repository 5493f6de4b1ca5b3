"""Our search after 20 trials, for either score, and the extractors that come with a proof."""

METHODS = {
    "search ICE": {"name": "search", "trials": 20, "scoring": "ice"},
    "search FiRe": {"name": "search", "trials": 20, "scoring": "neg_fire"},
    "OptimalTree": {"name": "optimal-tree"},
    "OptimalList": {"name": "optimal-list"},
}
