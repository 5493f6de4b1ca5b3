"""Tests with the real PSyKE and tuProlog, skipped if they are neither installed nor required."""

from __future__ import annotations

import importlib.util
import os

# `tox -e engines` sets it, so that a missing engine causes an error instead of skipped tests.
needed = "psyke" in os.environ.get("SKESCORE_ENGINES", "").split(",")
collect_ignore_glob = [] if needed or importlib.util.find_spec("psyke") else ["test_*.py"]
