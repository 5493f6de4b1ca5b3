"""Our slower extractors, which query the black box repeatedly, with default settings."""

METHODS = {
    "ITER": {"name": "iter"},
    "REAL": {"name": "real"},
    "Trepan": {"name": "trepan"},
}
