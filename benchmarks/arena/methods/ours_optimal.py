"""Our extractors of optimal rules with default settings."""

METHODS = {"OptimalTree": {"name": "optimal-tree"}, "OptimalList": {"name": "optimal-list"}}
