"""Tests beside the real PSyKE and tuProlog: only where they are installed, or must be."""

from __future__ import annotations

import importlib.util
import os

# `tox -e engines` sets it, so that a missing engine fails there instead of being left out.
needed = "psyke" in os.environ.get("SKESCORE_ENGINES", "").split(",")
collect_ignore_glob = [] if needed or importlib.util.find_spec("psyke") else ["test_*.py"]
