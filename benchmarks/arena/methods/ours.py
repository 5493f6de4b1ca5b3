"""Our extractors with their defaults."""

METHODS = {
    "CART": {"name": "cart"},
    "CREAM": {"name": "cream"},
    "ExACT": {"name": "exact"},
    "GridEx": {"name": "gridex"},
    "GridREx": {"name": "gridrex"},
    "ITER": {"name": "iter"},
    "REAL": {"name": "real"},
    "Trepan": {"name": "trepan"},
}
