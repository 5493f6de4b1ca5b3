"""Settings for all tests."""

from __future__ import annotations

import os
import tempfile

from hypothesis import settings

# A slow machine is no fault of the code, so that no example has a deadline.
settings.register_profile("skescore", deadline=None)
settings.load_profile("skescore")

# What the command line keeps of searches that break off is not to be found by other runs.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="skescore-tests-")
