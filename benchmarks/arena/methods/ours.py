"""Our fast extractors with default settings; slower ones are in `ours_slower.py`."""

METHODS = {
    "CART": {"name": "cart"},
    "CREAM": {"name": "cream"},
    "ExACT": {"name": "exact"},
    "GridEx": {"name": "gridex"},
    "GridREx": {"name": "gridrex"},
}
