"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# A slow machine is no fault of the code, so that no example has a deadline.
settings.register_profile("skescore", deadline=None)
settings.load_profile("skescore")
