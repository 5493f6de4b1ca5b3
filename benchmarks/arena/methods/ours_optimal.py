"""Our extractors that come with a proof, with their defaults."""

METHODS = {"OptimalTree": {"name": "optimal-tree"}, "OptimalList": {"name": "optimal-list"}}
