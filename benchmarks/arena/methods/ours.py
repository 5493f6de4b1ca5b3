"""Our extractors with their defaults; those that take longer are beside."""

METHODS = {
    "CART": {"name": "cart"},
    "CREAM": {"name": "cream"},
    "ExACT": {"name": "exact"},
    "GridEx": {"name": "gridex"},
    "GridREx": {"name": "gridrex"},
}
