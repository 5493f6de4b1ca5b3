"""Our extractors with their defaults that query the black box again and again."""

METHODS = {
    "ITER": {"name": "iter"},
    "REAL": {"name": "real"},
    "Trepan": {"name": "trepan"},
}
